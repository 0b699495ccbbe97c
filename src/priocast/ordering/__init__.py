"""What protocols are made of: mechanisms that several classes of total order share."""
