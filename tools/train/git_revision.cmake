# Writes OUTPUT, a source file with the commit of SOURCE_DIR, and touches it only if that changed.
set(revision "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE described ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision ${described})
  endif()
endif()
set(text "#include \"tools/train/build_info.h\"

namespace crucible::train {

std::string git_revision() {
  return \"${revision}\";
}

}  // namespace crucible::train
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
