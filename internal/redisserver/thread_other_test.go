//go:build !linux

package redisserver

func threadID() int { return 0 }

func threadExists(int) bool { return false }
