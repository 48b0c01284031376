# An engine whose library is not found ends with what to do about it, here and in the list.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/plugins
[ -f "$ROOFLINE_PLUGIN_PATH/engine_absent-1.0-test.so" ] || { echo "no absent plugin" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
roofline doctor | sed -n '/absent-1.0-test/s/.*\(libabsent.so.*\)/\1/p'
roofline list engines | sed -n '/^  absent-1.0-test/{n;s/.*\(libabsent.so.*\)/\1/p;}'
# and that cure helps: the library is found, and the next fault is the plugin's own
LD_LIBRARY_PATH=$(dirname "$ROOFLINE")/../tests/elsewhere roofline list engines |
	sed -n '/^  absent-1.0-test/{n;s/.*\(has no symbol .*\)/\1/p;}'
