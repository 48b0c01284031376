# A plugin that is no library is a row with its reason, not an end of the program.
mkdir plugins
echo "no library" >plugins/engine_torch-9.9-cpu.so
ROOFLINE_PLUGIN_PATH=$PWD/plugins roofline list engines | sed -n "/^  torch-9.9-cpu/{p;n;p;}"
