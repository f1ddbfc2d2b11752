package store

// readMemory holds what one statement has found: bytes of packed results, and parts of histories
// with such bytes. Copies of them would soon be garbage.
type readMemory struct {
	bytes []byte
	parts []stripRow
}

// keep returns a copy of bytes in the memory.
func (m *readMemory) keep(b []byte) []byte {
	from := len(m.bytes)
	m.bytes = append(m.bytes, b...)
	return m.bytes[from:len(m.bytes):len(m.bytes)]
}

// free lets another reading use the memory. Nothing may refer to it any more.
func (m *readMemory) free(s *Store) {
	clear(m.parts[:cap(m.parts)]) // nor may it keep texts in memory
	m.bytes, m.parts = m.bytes[:0], m.parts[:0]
	s.read.Put(m)
}
