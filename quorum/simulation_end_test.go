package quorum

import "github.com/redquorum/redquorum/clock"

// End is when a lease ends, or has ended because its time was over. It does not look at the clock, and so does not end it.
func End(l *Lease) clock.Instant {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}
