# The consumer built against an install of this build.  The other variant, with the sources as a part
# of the project, builds the library once more; .ci/run does that.
set(consumer_folder ${CMAKE_CURRENT_BINARY_DIR}/consumer)
set(consumer_options
  -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
  -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
  -DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS})

add_test(NAME Consumer.Installs
         COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${consumer_folder}/prefix)
set_tests_properties(Consumer.Installs PROPERTIES FIXTURES_SETUP consumer_prefix)

add_test(NAME Consumer.BuildsAgainstTheInstalledLibrary
         COMMAND ${CMAKE_CTEST_COMMAND}
                 --build-and-test ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${consumer_folder}/installed
                 --build-generator ${CMAKE_GENERATOR} --build-project consumer
                 --build-options ${consumer_options} -DCMAKE_PREFIX_PATH=${consumer_folder}/prefix
                 --test-command consumer)
set_tests_properties(Consumer.BuildsAgainstTheInstalledLibrary PROPERTIES
                     FIXTURES_REQUIRED consumer_prefix)
