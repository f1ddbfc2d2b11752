package pages

import "net/http"

// movedTo leads to another address of the page. It is no error of the visitor.
type movedTo struct{ address string }

func (m *movedTo) Error() string { return "the page is at " + m.address }

// moved leads to the same page with other values of parameters.
func (v *visit) moved(values map[string]string) error {
	query := v.URL.Query()
	for name, value := range values {
		query.Set(name, value)
	}
	return &movedTo{v.URL.EscapedPath() + "?" + query.Encode()}
}

// lead sends the visitor to the address of the page.
func (m *movedTo) lead(w http.ResponseWriter, v *visit) {
	protect(w.Header())
	http.Redirect(w, v.Request, m.address, http.StatusFound)
}

// offering is an error with an address for each name that it offers instead of an unknown
// one.
type offering struct {
	error
	to func(name string) link
}

func (o *offering) Unwrap() error { return o.error }
