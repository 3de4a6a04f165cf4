package schemas

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// What printsAlike says of a number is so: it is printed as it was written.
func TestPrintsAlike(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"1.5": true, "123456.123456789": true, "1.0": false, "0.5": false, "-1.5": false, "1234567.5": false, "1.1234567891": false, "1.5e3": false, "12": false,
	} {
		if printsAlike(value) != want {
			t.Errorf("%s: %v, expected %v", value, !want, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[1-9][0-9]{0,6}\.[0-9]{1,10}`).Draw(t, "value")
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		if a := Float64("k", f); printsAlike(value) && a.Text() != value {
			t.Fatalf("%s is printed as %s", value, a.Text())
		}
	})
}
