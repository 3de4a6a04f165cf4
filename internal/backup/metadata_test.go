package backup

import (
	"strings"
	"testing"
)

const beforeText = `<config><version>1</version><uuid>u1</uuid><contents>` +
	`<file><name>data/a/1/data.bin</name><size>7</size><checksum>c7</checksum></file>` +
	`<file><name>data/a/2/data.bin</name><size>7</size><checksum>c7</checksum><data_file>data/a/1/data.bin</data_file></file></contents></config>`

const afterText = `<config><version>1</version><uuid>u2</uuid><base_backup>File('x')</base_backup><base_backup_uuid>u1</base_backup_uuid><contents>` +
	`<file><name>data/a/1/data.bin</name><size>7</size><checksum>c7</checksum><use_base>true</use_base></file>` +
	`<file><name>data/a/3/data.bin</name><size>9</size><checksum>c9</checksum></file></contents></config>`

// A backup that stands on another is made one that stands alone.
func TestWhole(t *testing.T) {
	t.Parallel()
	base, err := readMetadata([]byte(beforeText))
	if err != nil {
		t.Fatal(err)
	}
	alone, taken, err := whole([]byte(afterText), base)
	if err != nil || len(taken) != 1 || taken["data/a/1/data.bin"] != "data/a/1/data.bin" {
		t.Fatalf("%v, %v", taken, err)
	}
	if s := string(alone); strings.Contains(s, "base") || !strings.Contains(s, "<uuid>u2</uuid>") || strings.Count(s, "<file>") != 2 {
		t.Errorf("it is %s", s)
	}
	if _, _, err := whole([]byte(afterText), nil); err == nil {
		t.Error("a file that no backup has was taken for there")
	}
	for name, text := range map[string]string{
		"in part":  strings.Replace(afterText, "<use_base>", "<base_size>3</base_size><use_base>", 1),
		"upwards":  strings.Replace(afterText, "data/a/3", "../../../a", 1),
		"absolute": strings.Replace(afterText, "data/a/3", "/etc", 1),
		"no XML":   "x",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := whole([]byte(text), base); err == nil {
				t.Errorf("%s: taken", name)
			}
		})
	}
}
