package embedded

import (
	"fmt"
	"os"
	"sync"
)

// engineLogBytes is the size at which a new log starts; with the one before it kept, a log never takes more than
// twice as much.
const engineLogBytes = 8 << 20

// engineLogTail is how much of the last output is kept for an error message.
const engineLogTail = 4 << 10

// engineLog takes what the engine prints: into a file with a bound, and its end into memory.
type engineLog struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
	tail []byte
}

func openEngineLog(path string, limit int64) (*engineLog, error) {
	l := &engineLog{path: path, limit: limit}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *engineLog) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the engine's log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("opening the engine's log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write never fails: an engine must not die because its log cannot grow. What a full disk refuses is lost.
func (l *engineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, p...)
	if over := len(l.tail) - engineLogTail; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	if l.size+int64(len(p)) > l.limit {
		l.rotate()
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

func (l *engineLog) rotate() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	_ = os.Rename(l.path, l.path+".1")
	_ = l.open()
}

// forget drops the tail, so that the next start is not blamed for the last one's words.
func (l *engineLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = l.tail[:0]
}

func (l *engineLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.tail)
}

func (l *engineLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
