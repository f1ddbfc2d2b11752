package revision

import (
	"slices"
	"strings"
)

// passed lists the variables that git may see: those for finding programs, keys,
// certificates and proxies, but not, for example, a token or the database's address.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CEILING_DIRECTORIES", "SYSTEMROOT",
}

// Environment returns the environment of the git program, made of the few variables of
// environ that it needs. It keeps git from prompting, and from taking one object for
// another as a repository says.
func Environment(environ []string) []string {
	out := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never",
		"GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=30", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(passed, name) {
			out = append(out, e) // a later assignment wins
		}
	}
	return out
}
