"""The web page: thin views over analyses."""
