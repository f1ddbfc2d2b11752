package up

import (
	"net/url"
	"regexp"
)

// passwordWord is a password in a list of settings, as in "host=db password='a b' user=x".
var passwordWord = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)`)

// withoutPassword returns the address of a database, a URL or a list of settings, with xxxxx for its passwords. Anything
// else is left out.
func withoutPassword(database string) string {
	u, err := url.Parse(database)
	if err != nil || u.Scheme == "" {
		if !passwordWord.MatchString(database) && err != nil {
			return ""
		}
		return passwordWord.ReplaceAllString(database, "${1}xxxxx")
	}
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}
