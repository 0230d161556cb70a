"""How fast the verifier is, against a bare pass over the memory it must read.

``python -m bench`` races the contenders case by case, writes ``bench/results.csv``, and renders
it: a table on the terminal, the same table in ``docs/explanation/speed.md``, and a plot.
"""
