# A guest that crashes costs its own line and nothing else.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/plugins
[ -f "$ROOFLINE_PLUGIN_PATH/engine_crash-1.0-test.so" ] || { echo "no crash plugin" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
roofline doctor | grep '^no *engine *crash'
roofline doctor | tail -n 1 | cut -c 1-13
roofline list engines | sed -n '/^  crash-1.0-test/{n;s/^ *//p;}'
