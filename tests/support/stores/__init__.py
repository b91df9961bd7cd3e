"""Object stores that fail on demand, and local servers for S3 and DynamoDB."""
