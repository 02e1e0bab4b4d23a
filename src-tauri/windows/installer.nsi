; The installer for Windows: for one person, without asking an administrator. scripts/windows/bundle.sh calls makensis:
;
;   VERSION   of Foretoken, such as 0.1.0
;   PROGRAM   the folder with foretoken.exe, foretoken-cli.exe and WebView2Loader.dll
;   SOURCES   the repository
;   OUT       the installer to make
;   QUICK     nothing is compressed, for a try
;
; Where SmolLM2's file is missing, it is not offered.
;
; Options: /S asks nothing, /D=FOLDER installs there. The uninstaller's: /S, and /CONVERSATIONS, which deletes those too.

Target amd64-unicode
!ifdef QUICK
    SetCompress off
!else
    SetCompressor /SOLID lzma
!endif
RequestExecutionLevel user
ManifestDPIAware true

!include MUI2.nsh
!include FileFunc.nsh
!include LogicLib.nsh

!define NAME Foretoken
!define IDENTIFIER dev.foretoken
!define NOTIFIER_KEY "Software\Classes\AppUserModelId\${IDENTIFIER}"
!define MODEL_KIND ${IDENTIFIER}.gguf
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\${IDENTIFIER}"
; Where Microsoft says that WebView2 is looked for, and where people get it.
!define WEBVIEW2_CLIENT "Microsoft\EdgeUpdate\Clients\{F3017226-FE2A-4295-8BDF-00C3A9A7E4C5}"
!define WEBVIEW2_PAGE https://developer.microsoft.com/microsoft-edge/webview2/
!define SMOLLM2 "${SOURCES}/smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"

Name ${NAME}
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL_KEY}" InstallLocation
BrandingText "${NAME} ${VERSION}"

VIProductVersion ${VERSION}.0
VIAddVersionKey ProductName ${NAME}
VIAddVersionKey ProductVersion ${VERSION}
VIAddVersionKey FileVersion ${VERSION}
VIAddVersionKey FileDescription "${NAME} installer"
VIAddVersionKey LegalCopyright "MIT OR Apache-2.0"

!define MUI_ICON "${SOURCES}/icons/icon.ico"
!define MUI_UNICON "${SOURCES}/icons/icon.ico"
!define MUI_FINISHPAGE_RUN "$INSTDIR\foretoken.exe"
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_COMPONENTS
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE English
!insertmacro MUI_LANGUAGE German

LangString PROGRAM_NAME ${LANG_ENGLISH} "Foretoken"
LangString PROGRAM_NAME ${LANG_GERMAN} "Foretoken"
LangString MODEL_NAME ${LANG_ENGLISH} "SmolLM2, a model to begin with (98 MB)"
LangString MODEL_NAME ${LANG_GERMAN} "SmolLM2, ein Modell für den Anfang (98 MB)"
LangString CONVERSATIONS_NAME ${LANG_ENGLISH} "Conversations, settings and models of your own"
LangString CONVERSATIONS_NAME ${LANG_GERMAN} "Unterhaltungen, Einstellungen und eigene Modelle"
LangString MODEL_FILE ${LANG_ENGLISH} "Language model"
LangString MODEL_FILE ${LANG_GERMAN} "Sprachmodell"
LangString RUNNING ${LANG_ENGLISH} "Foretoken is running. Close it, then try again."
LangString RUNNING ${LANG_GERMAN} "Foretoken läuft noch. Schließen Sie es und versuchen Sie es erneut."
LangString NO_WEBVIEW2 ${LANG_ENGLISH} "WebView2 is missing, the part of Windows that draws Foretoken's window. Open the page where you get it?$\n$\n${WEBVIEW2_PAGE}"
LangString NO_WEBVIEW2 ${LANG_GERMAN} "WebView2 fehlt, der Teil von Windows, der Foretokens Fenster zeichnet. Die Seite öffnen, auf der es zu haben ist?$\n$\n${WEBVIEW2_PAGE}"
LangString UNWRITTEN ${LANG_ENGLISH} "Foretoken cannot be installed in $INSTDIR: nothing can be written there. Choose another folder."
LangString UNWRITTEN ${LANG_GERMAN} "Foretoken kann nicht in $INSTDIR installiert werden: Dort lässt sich nichts schreiben. Wählen Sie einen anderen Ordner."

; Windows lets nobody write to a program that runs.
!macro EXPECT_CLOSED PROGRAM
    ${Do}
        ClearErrors
        ${IfNot} ${FileExists} "$INSTDIR\${PROGRAM}"
            ${Break}
        ${EndIf}
        FileOpen $0 "$INSTDIR\${PROGRAM}" a
        ${IfNot} ${Errors}
            FileClose $0
            ${Break}
        ${EndIf}
        MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION $(RUNNING) /SD IDCANCEL IDRETRY +3
        SetErrorLevel 2
        Abort $(RUNNING)
    ${Loop}
!macroend

; What an installation put there, and nothing else.
!macro REMOVE_MODEL
    Delete "$INSTDIR\smollm2\SmolLM2-*.gguf"
    Delete "$INSTDIR\smollm2\smollm2-head.gguf"
    Delete "$INSTDIR\smollm2\NOTICE.md"
    Delete "$INSTDIR\smollm2\LICENSE"
    RMDir "$INSTDIR\smollm2"
!macroend

!macro REMOVE_FILES
    Delete "$INSTDIR\foretoken.exe"
    Delete "$INSTDIR\foretoken-cli.exe"
    Delete "$INSTDIR\WebView2Loader.dll"
    Delete "$INSTDIR\LICENSE-*"
    Delete "$INSTDIR\starter\starter-*.gguf"
    RMDir "$INSTDIR\starter"
    !insertmacro REMOVE_MODEL
!macroend

; Has the desktop look again at what opens a file.
!macro TELL_DESKTOP
    System::Call "shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)"
!macroend

Section $(PROGRAM_NAME) PROGRAM_SECTION
    SectionIn RO
    !insertmacro EXPECT_CLOSED foretoken.exe
    !insertmacro EXPECT_CLOSED foretoken-cli.exe
    ClearErrors
    SetOutPath $INSTDIR
    File "${PROGRAM}/foretoken.exe"
    File "${PROGRAM}/foretoken-cli.exe"
    File "${PROGRAM}/WebView2Loader.dll"
    File "${SOURCES}/LICENSE-MIT"
    File "${SOURCES}/LICENSE-APACHE"
    SetOutPath "$INSTDIR\starter"
    File "${SOURCES}/starter/starter-target-Q8_0.gguf"
    File "${SOURCES}/starter/starter-draft-Q8_0.gguf"
    WriteUninstaller "$INSTDIR\uninstall.exe"
    ${If} ${Errors}
        MessageBox MB_OK|MB_ICONSTOP $(UNWRITTEN) /SD IDOK
        SetErrorLevel 3
        Abort $(UNWRITTEN)
    ${EndIf}

    SetOutPath $INSTDIR
    CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\foretoken.exe"

    ; Another program that opens models keeps doing so; this one is offered beside it.
    WriteRegStr HKCU "Software\Classes\${MODEL_KIND}" "" $(MODEL_FILE)
    WriteRegStr HKCU "Software\Classes\${MODEL_KIND}\DefaultIcon" "" '"$INSTDIR\foretoken.exe",0'
    WriteRegStr HKCU "Software\Classes\${MODEL_KIND}\shell\open\command" "" '"$INSTDIR\foretoken.exe" "%1"'
    WriteRegStr HKCU "Software\Classes\.gguf\OpenWithProgids" ${MODEL_KIND} ""
    ReadRegStr $0 HKCR .gguf ""
    ${If} $0 == ""
        WriteRegStr HKCU "Software\Classes\.gguf" "" ${MODEL_KIND}
    ${EndIf}

    ; Without it, Windows shows no notifications.
    WriteRegStr HKCU "${NOTIFIER_KEY}" DisplayName ${NAME}
    !insertmacro TELL_DESKTOP

    WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayName ${NAME}
    WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayVersion ${VERSION}
    WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayIcon "$INSTDIR\foretoken.exe"
    WriteRegStr HKCU "${UNINSTALL_KEY}" Publisher "The Foretoken developers"
    WriteRegStr HKCU "${UNINSTALL_KEY}" InstallLocation $INSTDIR
    WriteRegStr HKCU "${UNINSTALL_KEY}" UninstallString '"$INSTDIR\uninstall.exe"'
    WriteRegStr HKCU "${UNINSTALL_KEY}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S'
    WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoModify 1
    WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoRepair 1
SectionEnd

!if /FileExists "${SMOLLM2}"
Section $(MODEL_NAME) MODEL_SECTION
    SetOutPath "$INSTDIR\smollm2"
    File "${SMOLLM2}"
    File "${SOURCES}/smollm2/smollm2-head.gguf"
    File "${SOURCES}/smollm2/NOTICE.md"
    File /oname=LICENSE "${SOURCES}/LICENSE-APACHE"
SectionEnd
!endif

; An older one's.
Section -Unwanted
    !if /FileExists "${SMOLLM2}"
        ${IfNot} ${SectionIsSelected} ${MODEL_SECTION}
            !insertmacro REMOVE_MODEL
        ${EndIf}
    !endif
SectionEnd

Section -Size
    ${GetSize} $INSTDIR "/S=0K" $0 $1 $2
    WriteRegDWORD HKCU "${UNINSTALL_KEY}" EstimatedSize $0
SectionEnd

Function .onInit
    !if /FileExists "${SMOLLM2}"
        ; Who did without the model does so after an update, too.
        ReadRegStr $0 HKCU "${UNINSTALL_KEY}" InstallLocation
        ${If} $0 != ""
        ${AndIfNot} ${FileExists} "$0\smollm2\*.gguf"
            !insertmacro UnselectSection ${MODEL_SECTION}
        ${EndIf}
    !endif
FunctionEnd

Function .onInstSuccess
    ReadRegStr $0 HKLM "SOFTWARE\WOW6432Node\${WEBVIEW2_CLIENT}" pv
    ${If} $0 == ""
        ReadRegStr $0 HKCU "Software\${WEBVIEW2_CLIENT}" pv
    ${EndIf}
    ${If} $0 == ""
    ${OrIf} $0 == "0.0.0.0"
        MessageBox MB_YESNO|MB_ICONEXCLAMATION $(NO_WEBVIEW2) /SD IDNO IDNO +2
        ExecShell open ${WEBVIEW2_PAGE}
    ${EndIf}
FunctionEnd

Section un.$(PROGRAM_NAME) UN_PROGRAM_SECTION
    SectionIn RO
    !insertmacro EXPECT_CLOSED foretoken.exe
    !insertmacro EXPECT_CLOSED foretoken-cli.exe
    !insertmacro REMOVE_FILES
    Delete "$INSTDIR\uninstall.exe"
    RMDir $INSTDIR
    Delete "$SMPROGRAMS\${NAME}.lnk"

    DeleteRegKey HKCU "${NOTIFIER_KEY}"
    DeleteRegKey HKCU "Software\Classes\${MODEL_KIND}"
    DeleteRegValue HKCU "Software\Classes\.gguf\OpenWithProgids" ${MODEL_KIND}
    DeleteRegKey /ifempty HKCU "Software\Classes\.gguf\OpenWithProgids"
    ReadRegStr $0 HKCU "Software\Classes\.gguf" ""
    ${If} $0 == ${MODEL_KIND}
        DeleteRegValue HKCU "Software\Classes\.gguf" ""
    ${EndIf}
    DeleteRegKey /ifempty HKCU "Software\Classes\.gguf"
    DeleteRegKey HKCU "${UNINSTALL_KEY}"
    !insertmacro TELL_DESKTOP
SectionEnd

; Not unless a person ticks it, or says so: its own folders, that of the window's state and WebView2's included.
Section /o un.$(CONVERSATIONS_NAME) CONVERSATIONS_SECTION
    RMDir /r "$LOCALAPPDATA\${IDENTIFIER}"
    RMDir /r "$APPDATA\${IDENTIFIER}"
SectionEnd

Function un.onInit
    ${GetParameters} $0
    ClearErrors
    ${GetOptions} $0 /CONVERSATIONS $1
    ${IfNot} ${Errors}
        !insertmacro SelectSection ${CONVERSATIONS_SECTION}
    ${EndIf}
FunctionEnd
