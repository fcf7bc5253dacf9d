package redisstore

// isReset returns false, because Plan 9 has no numbers for these errors.
func isReset(error) bool { return false }
