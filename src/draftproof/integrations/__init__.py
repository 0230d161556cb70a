"""The doors to other people's tools: thin, and imported by nobody inside."""
