package bench

// Constraints narrow where a job may run, beyond its target and size class. The
// zero value narrows nothing.
type Constraints struct {
	// Machines names collectors (or shared hosts); whichever idles first takes it.
	Machines []string `json:"machines,omitempty"`
	// Groups names machine groups: machines of one make, for performance, not for
	// hardware compatibility, as cards may differ within one.
	Groups []string `json:"groups,omitempty"`
	// Type is hw, vm or dc (a bare machine, a virtual one, a container); empty: any.
	Type string `json:"type,omitempty"`
	// Devices must all be there.
	Devices []string `json:"devices,omitempty"`
	// Labels must all be there with these values.
	Labels map[string]string `json:"labels,omitempty"`
	// MemoryBytes and CPUs are the least that the job needs; 0: any.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUs        int   `json:"cpus,omitempty"`
	// CacheDirs are wished for, not needed: collectors that have most of them go
	// first for a while.
	CacheDirs []string `json:"cache_dirs,omitempty"`
}
