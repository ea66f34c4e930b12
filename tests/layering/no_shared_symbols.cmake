# cmake -DNM=<nm> -DOBJECTS=<files> -P no_shared_symbols.cmake
# Fails if an object defines a symbol that the linker may merge with one of another object: weak
# (W, V) or unique (u).  The personality reference of exception handling is data, and harmless.
if(NOT OBJECTS)
  message(FATAL_ERROR "no_shared_symbols: there is no object to look at.")
endif()
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only -C ${object} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]+" shared "${symbols}")
  list(FILTER shared EXCLUDE REGEX "DW.ref.__gxx_personality_v0")
  if(shared)
    list(JOIN shared "\n  " lines)
    message(SEND_ERROR "${object} shares these with other objects:\n  ${lines}")
  endif()
endforeach()
