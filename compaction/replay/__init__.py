"""Replay: simulate a policy on a recorded session, call by call.

    replay(transcript, policy, counter, budget=...) -> Result

Pure functions: nothing here reads a store or calls a model, unless a summarizer is passed in.
"""
