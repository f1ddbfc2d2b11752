package tune

// File returns the setting in a file.
func File(root, path string) Setting { return fileSetting{root, path} }

// Masks are in the kernel's format.
var (
	ParseMask  = parseMask
	FormatMask = formatMask
)
