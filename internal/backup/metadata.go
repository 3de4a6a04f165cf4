package backup

import (
	"encoding/xml"
	"fmt"
	"path"
	"strings"
)

// metadataName is the file in which ClickHouse says what a backup of its tables has.
const metadataName = ".backup"

// metadata is that file, as far as it is read here.
type metadata struct {
	Files []metadataFile `xml:"contents>file"`
}

type metadataFile struct {
	Name     string `xml:"name"`
	Size     int64  `xml:"size"`
	Checksum string `xml:"checksum"`
	DataFile string `xml:"data_file"` // where its bytes are, where not under its name
	UseBase  bool   `xml:"use_base"`
	BaseSize int64  `xml:"base_size"`
}

// stands is where the bytes of the file are.
func (f *metadataFile) stands() string {
	if f.DataFile != "" {
		return f.DataFile
	}
	return f.Name
}

// sameBytes is a file's identity to ClickHouse.
type sameBytes struct {
	size     int64
	checksum string
}

func readMetadata(text []byte) (*metadata, error) {
	var m metadata
	if err := xml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("backup: what ClickHouse wrote of its backup cannot be read: %w", err)
	}
	for i := range m.Files {
		if f := &m.Files[i]; !path.IsAbs(f.stands()) && path.Clean(f.stands()) == f.stands() && !strings.HasPrefix(f.stands(), "..") {
			continue
		}
		return nil, fmt.Errorf("backup: ClickHouse names the file %q", m.Files[i].stands())
	}
	return &m, nil
}

// whole makes of a backup that stands on another one that stands alone: its metadata, and the files that it takes
// from the other, by their names there.
func whole(text []byte, base *metadata) (alone []byte, fromBase map[string]string, err error) {
	m, err := readMetadata(text)
	if err != nil {
		return nil, nil, err
	}
	have := map[sameBytes]string{}
	if base != nil {
		for i := range base.Files {
			f := &base.Files[i]
			have[sameBytes{f.Size, f.Checksum}] = f.stands()
		}
	}
	fromBase = map[string]string{}
	for i := range m.Files {
		f := &m.Files[i]
		if !f.UseBase {
			continue
		}
		stood, ok := have[sameBytes{f.Size, f.Checksum}]
		if !ok || f.BaseSize != 0 && f.BaseSize != f.Size || f.DataFile != "" {
			return nil, nil, fmt.Errorf("backup: the file %s is in the backup before in part, or not at all", f.Name)
		}
		fromBase[f.Name] = stood
	}
	s := string(text)
	for _, tag := range []string{"base_backup", "base_backup_uuid", "use_base"} {
		s = without(s, tag)
	}
	return []byte(s), fromBase, nil
}

// without takes an element out wherever it stands.
func without(s, tag string) string {
	begin, end := "<"+tag+">", "</"+tag+">"
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, begin)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		if _, s, ok = strings.Cut(rest, end); !ok {
			return b.String()
		}
	}
}
