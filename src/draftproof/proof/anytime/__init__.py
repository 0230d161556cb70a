"""Any-time evidence: bets against a subject, which may be settled whenever one likes."""
