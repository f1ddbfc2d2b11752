package measure

// Groups returns the directories of the control groups that count the resources of a slot's commands, by controller. A version 2
// hierarchy has the key "unified". The map is empty without groups.
func (s *Sandbox) Groups() map[string]string {
	groups := map[string]string{}
	if s.groups.unified != nil {
		groups["unified"] = s.groups.unified.Name()
	}
	for _, g := range s.groups.legacy {
		for _, controller := range g.controllers {
			groups[controller] = g.dir
		}
	}
	return groups
}
