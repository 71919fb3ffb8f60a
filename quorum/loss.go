package quorum

import "fmt"

// A Loss is why a lease was lost.
type Loss int

// The reasons for a loss; 0 is none.
const (
	// LossNotRenewed: no quorum of nodes agreed to a renewal before the lease's end.
	LossNotRenewed Loss = iota + 1
	// LossOutvoted: so many nodes have another holder that no quorum is left.
	LossOutvoted
	// LossLeaseTime: it had a lease time, which is over.
	LossLeaseTime
	// LossMaxHold: Config.MaxHold is over.
	LossMaxHold
	// LossRevoked: a node answered that the lock was force-released. One such answer is enough.
	LossRevoked
)

// String returns the reason in lower case.
func (l Loss) String() string {
	switch l {
	case 0:
		return "none"
	case LossNotRenewed:
		return "not-renewed"
	case LossOutvoted:
		return "outvoted"
	case LossLeaseTime:
		return "lease-time"
	case LossMaxHold:
		return "max-hold"
	case LossRevoked:
		return "revoked"
	}
	return fmt.Sprintf("Loss(%d)", int(l))
}

// why is what the log says.
func (l Loss) why() string {
	switch l {
	case LossNotRenewed:
		return "it could not be renewed in time"
	case LossOutvoted:
		return "other holders on more than N - quorum nodes"
	case LossLeaseTime:
		return "the lease time is over"
	case LossMaxHold:
		return "MaxHold is over"
	case LossRevoked:
		return "it was force-released"
	}
	return l.String()
}

// lose ends the lease with ErrLost.
func (h *hold) lose(why Loss) {
	if h.finish(ErrLost, why) == nil {
		return
	}
	h.mu.Lock()
	token := h.token
	h.mu.Unlock()
	h.c.log.Warn("lease lost", "name", h.name, "holder", h.holder, "token", token, "why", why.why())
	if h.c.trace.loss != nil {
		h.c.trace.loss.TraceLoss(TraceLossData{Name: h.name, Holder: h.holder, Token: token, Loss: why})
	}
}
