"""From logits: sampling parameters, the laws that they make, and verification under them."""
