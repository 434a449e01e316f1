"""Helpers without domain knowledge: files, scratch buffers, parallel work, URLs and formatting."""
