# cmake -DINPUT=<header> -DOUTPUT=<header> -P export_header.cmake
# In the tree includes read from the root; in a header for others they read from the header itself,
# so that no include path of theirs can lead them to another file.
file(READ "${INPUT}" text)
string(REGEX REPLACE "(\n#include \")(core|ops|optim|models|data)/" "\\1../\\2/" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
