package reverse

import (
	"strings"
	"testing"
)

func TestReverse(t *testing.T) {
	if got := Reverse("abc"); got != "cba" {
		t.Errorf("Reverse(abc) = %s", got)
	}
}

func BenchmarkReverse(b *testing.B) {
	text := strings.Repeat("all work and no play ", 50)
	for i := 0; i < b.N; i++ {
		Reverse(text)
	}
}
