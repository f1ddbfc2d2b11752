package collection

// HoldAtMost limits the blocks in memory, in bytes.
func (s *Spool) HoldAtMost(bytes int) { s.most = bytes }
