"""The page: thin views over analyses."""
