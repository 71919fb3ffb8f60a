package main

import "slices"

// core are the variants that CI runs each time: the rules whose breach costs exclusion or tokens. All others are as well
// broken by "make mutation", which takes longer than a change should wait.
var core = []string{
	"a quorum of N/2", "a holder for all attempts", "a holder for all attempts at a name", "validity from the quorum's answer", "rollback on the caller's context",
	"absent believed while a request may still arrive", "token accepted before a quorum stores it",
	"one look for a rival's quorum", "requests that never expire", "acquire that never expires", "renewal that never expires",
	"no drift", "restored after the end", "renewal counted late", "release without owner check", "acquire shortens",
	"renewal shortens", "renewal of what is another's", "raise without owner check", "revoked ignored", "release without the token",
	"restores always count in quarantine", "acquires carry no incarnation",
	"keys are deleted when a quorum has stored the revocation", "a revoked answer is one vote of many",
	"nodes in quarantine grant", "a node in quarantine is no reason to ask the others", "a cluster is new by one look",
	"one token for all who are handed a hold",
	"connections are not checked", "a node whose clock ran off votes",
	"the sentinels' word is good for ever", "one sentinel decides",
	"a promoted server is asked at once",
}

// theCore are the variants of the core; a name that is no variant's is an error of the table.
func theCore(variants []variant) (found []variant, missing []string) {
	for _, name := range core {
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		found = append(found, variants[i])
	}
	return found, missing
}
