package api

import (
	"os"
	"testing"
)

// The page is compiled against what the API answers with. ALMANAC_WRITE=1 writes its types.
func TestTypesOfThePage(t *testing.T) {
	t.Parallel()
	const at = "../console/web/src/api.ts"
	want := document().TypeScript()
	if os.Getenv("ALMANAC_WRITE") != "" {
		if err := os.WriteFile(at, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(at); err != nil || string(got) != want {
		t.Errorf("%s is not what the API answers with (%v): make reference", at, err)
	}
}
