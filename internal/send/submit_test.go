package send

import "testing"

// Lines of text that were perhaps meant as JSON.
func TestLooksLikeJSON(t *testing.T) {
	for line, want := range map[string]bool{
		`{"message":"m"}`: true, `[{"message":"a"},{"message":"b"}]`: true,
		`{`: false, `{}`: false, `[1,2]`: false, `[INFO] {"a":1}`: false, `[{"a":1}`: true, `plain`: false, ``: false,
	} {
		if looksLikeJSON([]byte(line)) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
