package schemas

import "testing"

// The subject of blanks is not that of a lock: a lock on a document is not taken for what a repair left.
func TestFrontBlankSubject(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"repair", "-"} {
		if got := FrontBlankSubject(StreamDocs, "customers"); got == DocLockSubject("customers", 0, id) {
			t.Errorf("%s is the lock of document %q", got, id)
		}
	}
}
