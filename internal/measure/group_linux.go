package measure

// Groups are the directories of a slot's control group, by controller, which count the resources of its commands. A hierarchy of
// version 2 has the key "unified". It is empty if there is no group.
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
