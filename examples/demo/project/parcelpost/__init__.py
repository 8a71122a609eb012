"""Prices of parcels, and invoices."""
