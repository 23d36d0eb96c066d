package redistest

import "errors"

// hasRoom is unknown here.
func hasRoom(string, uint64) bool { return false }

func (p *process) Pause() error { return errors.ErrUnsupported }

func (p *process) Resume() error { return errors.ErrUnsupported }
