// Package reverse turns texts around.
package reverse

// Reverse returns s with its letters in opposite order.
func Reverse(s string) string {
	var out string
	for _, letter := range s {
		out = string(letter) + out
	}
	return out
}
