"""What happens between two loops: one small class for each way of going on."""
