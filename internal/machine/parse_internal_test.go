package machine

import (
	"testing"
)

// Whatever a kernel, or a container that imitates one, writes: parsing ends with values or with an error.
func FuzzParsers(f *testing.F) {
	for _, text := range []string{
		"", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4\nctxt 7\n", "cpu0 one\n", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
		"eth0: 1 2 3 4 5 6 7 8 9 10\n", ":\n", "8 0 sda 1 2 3 4 5 6 7\n", "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n", "ctxt 99999999999999999999\n", "pgfault 7\npgmajfault x\n", "8:0 Read 4096\n8:0 Write 512\nTotal 4608\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, content string) {
		text := []byte(content)
		for _, wanted := range [][]int{nil, {0, 3}} {
			s := stat{cpus: map[int]CPUTimes{}}
			err := s.parse(text, wanted)
			if err == nil && len(s.cpus) > s.count {
				t.Fatalf("%d of %d CPUs", len(s.cpus), s.count)
			}
		}
		parseStalled(text)
		wanted := []named{{name: "pgfault"}, {name: "pgmajfault"}}
		if err := parseNamed(text, wanted); err == nil && !wanted[0].found && wanted[0].value != 0 {
			t.Fatalf("%+v was not found", wanted[0])
		}
		parseIOStat(text)
		var reads, writes int64
		if lines := parseBlockIO(text, &reads, &writes); lines == 0 && (reads != 0 || writes != 0) {
			t.Fatalf("%d and %d of no line", reads, writes)
		}
		if all, err := parseTraffic(text); err != nil && all != nil {
			t.Fatalf("%v beside %v", all, err)
		}
		if use, found, _ := parseDisks(text, func(string) bool { return true }); !found && use != (DiskUse{}) {
			t.Fatalf("%+v of no disk", use)
		}
	})
}
