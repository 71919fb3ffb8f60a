package simulation

import "maps"

// store is the data of one node.
type store map[string]*value

// value is a string or a hash, and when it expires.
type value struct {
	text    string
	hash    *hash // nil for a string
	expires int64 // in milliseconds of the node's wall clock; 0 if never
}

func (v *value) kind() string {
	if v.hash != nil {
		return "hash"
	}
	return "string"
}

// hash is a Redis hash in the order of insertion, as a small one is in Redis.
type hash struct {
	fields []string
	values map[string]string
}

func newHash() *hash { return &hash{values: make(map[string]string, 1)} }

func (h *hash) set(field, value string) (added bool) {
	if _, ok := h.values[field]; !ok {
		h.fields = append(h.fields, field)
		added = true
	}
	h.values[field] = value
	return added
}

func (h *hash) remove(field string) bool {
	if _, ok := h.values[field]; !ok {
		return false
	}
	delete(h.values, field)
	for i, f := range h.fields {
		if f == field {
			h.fields = append(h.fields[:i:i], h.fields[i+1:]...)
			break
		}
	}
	return true
}

// get returns what is at a key and has not expired at the node's time, in milliseconds.
func (s store) get(key string, now int64) *value {
	v := s[key]
	if v != nil && v.expires != 0 && v.expires <= now {
		delete(s, key)
		return nil
	}
	return v
}

// copy is a snapshot.
func (s store) copy() store {
	c := make(store, len(s))
	for key, v := range s {
		w := *v
		if v.hash != nil {
			w.hash = &hash{fields: append([]string(nil), v.hash.fields...), values: maps.Clone(v.hash.values)}
		}
		c[key] = &w
	}
	return c
}
