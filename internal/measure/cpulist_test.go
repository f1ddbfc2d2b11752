package measure_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestCPUListsAreReadAndWrittenLikeTheKernelDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		cpus  measure.CPUList
		short string
	}{
		{"", nil, ""},
		{"\n", nil, ""},
		{"0\n", measure.CPUList{0}, "0"},
		{"0-3,8", measure.CPUList{0, 1, 2, 3, 8}, "0-3,8"},
		{"8,1,0", measure.CPUList{0, 1, 8}, "0-1,8"},
		{"0-2,1-4,3", measure.CPUList{0, 1, 2, 3, 4}, "0-4"},
		{"5-5", measure.CPUList{5}, "5"},
		{"8190-8191", measure.CPUList{8190, 8191}, "8190-8191"},
	} {
		list, err := measure.ParseCPUList(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.cpus, list, c.text)
		require.Equal(t, c.short, list.String(), c.text)
	}
}

func TestIllegalCPUListsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "-", "1-", "-1", "3-1", "1,,2", "1, 2", "+1", "8192", "0-99999999999", "0-3:1/2"} {
		_, err := measure.ParseCPUList(text)
		require.ErrorContains(t, err, text, text)
	}
	_, err := measure.NewCPUList(0, -1)
	require.ErrorContains(t, err, "[0 -1]")
}

func TestACPUListIsAStringInJSON(t *testing.T) {
	t.Parallel()
	var got struct{ CPUs measure.CPUList }
	require.NoError(t, json.Unmarshal([]byte(`{"CPUs":"2,0-1"}`), &got))
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"CPUs":"0-2"}`, string(text))
	require.Error(t, json.Unmarshal([]byte(`{"CPUs":"x"}`), &got))
}

func FuzzParseCPUList(f *testing.F) {
	for _, text := range []string{"", "0-3,8", "8,1,0", "0-8191,0-8191", "1-", "9-2", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := measure.ParseCPUList(text)
		if err != nil {
			return
		}
		again, err := measure.ParseCPUList(list.String())
		require.NoError(t, err)
		require.Equal(t, list.String(), again.String())
		require.Len(t, again, len(list))
		for i := 1; i < len(list); i++ {
			require.Less(t, list[i-1], list[i])
		}
	})
}
