"""Sizes of prompts, in tokens.

`tokens` counts messages, `breakdown` sums them by component, `meter` follows the prompt of a session, and
`calibration` predicts the provider's count.
"""
