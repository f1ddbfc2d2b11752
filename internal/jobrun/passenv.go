package jobrun

import (
	"fmt"
	"slices"
	"strings"
)

// ownSecrets lists the prefixes of variables that no benchmark ever sees.
var ownSecrets = []string{"BENCHLOOM_", "TEMPORAL_", "DATABASE_", "PG"}

// DefaultPassEnv lists the variables that prepare steps and builds of any suite may ask for: where programs are, and how to
// download. "NAME*" stands for all that begin with NAME.
func DefaultPassEnv() []string {
	return []string{
		"PATH", "HOME", "GO*", "SSL_CERT_*", "SSH_AUTH_SOCK", // the socket of an agent, which isolated commands cannot reach
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	}
}

// passed selects variables of the collector's own environment. It fails if one of them must not be passed, set or not: a suite
// is refused on all collectors of its kind or on none.
func (m Machine) passed(names []string) ([]string, error) {
	var env []string
	for _, name := range names {
		for _, prefix := range ownSecrets {
			if strings.HasPrefix(strings.ToUpper(name), prefix) {
				return nil, fmt.Errorf("pass_env names %s: variables that begin with %s are the collector's own and are never passed", name, prefix)
			}
		}
		if m.PassEnv != nil && !slices.ContainsFunc(m.PassEnv, func(allowed string) bool { return permits(allowed, name) }) {
			return nil, fmt.Errorf("pass_env names %s, which this collector passes to no suite: remove it there, or start the collector with '--pass-env %s' if whoever writes suites may read its value", name, name)
		}
		for _, entry := range m.Environ {
			if key, _, ok := strings.Cut(entry, "="); ok && key == name {
				env = append(env, entry)
			}
		}
	}
	return env, nil
}

// permits reports whether an entry of PassEnv names a variable or stands for it.
func permits(allowed, name string) bool {
	prefix, some := strings.CutSuffix(allowed, "*")
	return name == allowed || some && strings.HasPrefix(name, prefix)
}
