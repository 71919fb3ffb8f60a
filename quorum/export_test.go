package quorum

// ContextsOf is how many contexts a lease keeps track of.
func ContextsOf(l *Lease) int {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return len(l.contexts)
}
