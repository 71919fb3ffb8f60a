package simulation

import (
	"hash/fnv"
	"math"
	"time"
)

// dice are the draws about one thing. They follow from what the thing is, never from how many others were drawn before
// it, so that the order in which goroutines run does not matter.
type dice uint64

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// diceFor returns the draws about a thing that these numbers identify.
func diceFor(seed uint64, what ...uint64) *dice {
	x := mix(seed + 0x9e3779b97f4a7c15)
	for _, w := range what {
		x = mix(x ^ mix(w+0x9e3779b97f4a7c15))
	}
	d := dice(x)
	return &d
}

// digest is the number of a message's content.
func digest(content []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(content) // never fails
	return h.Sum64()
}

// float is a draw from [0,1).
func (d *dice) float() float64 {
	*d += 0x9e3779b97f4a7c15
	return float64(mix(uint64(*d))>>11) / (1 << 53)
}

// chance is a draw of something that happens with this probability.
func (d *dice) chance(p float64) bool { return d.float() < p }

// about is a draw from an exponential distribution.
func (d *dice) about(mean time.Duration) time.Duration {
	return time.Duration(-math.Log1p(-d.float()) * float64(mean))
}

// word is a draw of 64 bits.
func (d *dice) word() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}
