"""Estimators: evidence in, estimates out that say what they are about."""
