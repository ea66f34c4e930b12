# What others see of crucible: one shared library, the public headers, a CMake and a pkg-config file.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(export_root ${PROJECT_BINARY_DIR}/include)
set(export_script ${PROJECT_SOURCE_DIR}/cmake/export_header.cmake)

# The umbrella lies beside the folders, so its includes hold as they are.
configure_file(crucible.h ${export_root}/crucible/crucible.h COPYONLY)
set(exported_headers ${export_root}/crucible/crucible.h)

get_property(public_headers GLOBAL PROPERTY crucible_public_headers)
foreach(header IN LISTS public_headers)
  set(exported ${export_root}/crucible/${header})
  add_custom_command(
    OUTPUT ${exported}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/${header} -DOUTPUT=${exported}
            -P ${export_script}
    DEPENDS ${PROJECT_SOURCE_DIR}/${header} ${export_script}
    COMMENT "Exporting ${header}" VERBATIM)
  list(APPEND exported_headers ${exported})
endforeach()

target_sources(crucible PUBLIC FILE_SET HEADERS BASE_DIRS ${export_root} FILES ${exported_headers})
target_compile_features(crucible PUBLIC cxx_std_20)
set_target_properties(crucible PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  VERIFY_INTERFACE_HEADER_SETS ON)  # target all_verify_interface_header_sets compiles each alone
add_library(crucible::crucible ALIAS crucible)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

install(TARGETS crucible EXPORT crucible-targets FILE_SET HEADERS)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/crucible)
install(EXPORT crucible-targets NAMESPACE crucible:: DESTINATION ${config_folder})
# Nothing of what crucible is made with shows in its headers, so a user needs no other package.
file(WRITE ${PROJECT_BINARY_DIR}/crucible-config.cmake
     "include(\${CMAKE_CURRENT_LIST_DIR}/crucible-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/crucible-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/crucible-config.cmake
              ${PROJECT_BINARY_DIR}/crucible-config-version.cmake
        DESTINATION ${config_folder})
string(REGEX REPLACE "[^/]+" ".." pc_to_prefix ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(cmake/crucible.pc.in ${PROJECT_BINARY_DIR}/crucible.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/crucible.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
