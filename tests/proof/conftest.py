"""Subjects are what is judged; some of them cannot even be imported."""

collect_ignore = ["subjects"]
