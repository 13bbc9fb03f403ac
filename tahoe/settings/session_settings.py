"""Session settings of the reference (``spark.databricks.delta.…``), and what becomes of each here.

Written as ``name`` or ``name=usual``, without the prefix: a setting that has its usual value asks for what is done anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tahoe.settings.setting import Setting, State, check_setting

__all__ = ["SESSION_SETTINGS", "PREFIX", "check_session_settings"]

PREFIX = "spark.databricks.delta."
_KIND = "session setting"
_FREE = (
    "spark.databricks.delta.properties.defaults.",
    *(
        f"spark.databricks.delta.streaming.allowSourceColumn{kind}.ckpt_"
        for kind in ("Drop", "Rename", "RenameAndDrop", "TypeChange")
    ),
)
"""Beginnings of settings that are looked at where they are used: properties of new tables are told of as properties, and what lets a stream
read past changes of the schema has the stream in its name."""

_BEYOND = (
    *(
        Setting(
            f"spark.databricks.io.skipping.mdc.{name}",
            State.NO_EFFECT,
            "Rows are laid out by ranks of their values.",
            _KIND,
            (usual,),
        )
        for name, usual in (("addNoise", "true"), ("rangeId.max", "1000"), ("sortWithinFiles", "false"))
    ),
    Setting(
        "spark.databricks.io.skipping.stringPrefixLength",
        State.NO_EFFECT,
        "How much of a text its bounds keep is up to delta.dataSkippingStringPrefixLength of the table.",
        _KIND,
        ("32",),
    ),
    Setting(
        "spark.delta.logStore.",
        State.NO_EFFECT,
        "Commits are put by what storage itself has: a new name or none. Another writer of the same table that goes by a lock of its own, as "
        "S3SingleDriverLogStore and S3DynamoDBLogStore do, does not keep to that: let one kind of writers write a table.",
        _KIND,
    ),
)
"""Settings of the reference with another beginning. A name that ends with a point stands for all that begin so."""

_WORKS = """
    columnMapping.allowRemoval rowTracking.backfill.maxNumFiles
    alterLocation.bypassSchemaCheck autoCompact.earlySkipPartitionTable.enabled autoCompact.enabled
    autoCompact.maxFileSize autoCompact.maxNumModifiedPartitions autoCompact.minFileSize autoCompact.minNumFiles
    autoCompact.modifiedPartitionsOnly.enabled autoCompact.nonBlindAppend.enabled autoCompact.reservePartitions.enabled
    changeDataFeed.timestampOutOfRange.enabled constraints.assumesDropIfExists.enabled
    delete.allowExistsSubquery
    commitInfo.userMetadata convert.metadataCheck.enabled convert.partitionValues.ignoreCastFailure
    convert.useCatalogPartitions convert.useCatalogSchema convert.useMetadataLog
    identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled optimize.batchSize
    optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize optimize.clustering.mergeStrategy.minCubeSize.threshold
    optimize.maxDeletedRowsRatio optimize.maxFileSize optimize.minFileSize optimize.zorder.checkStatsCollection.enabled
    optimizeMetadataQuery.enabled optimizeWrite.binSize optimizeWrite.enabled optimizeWrite.maxShufflePartitions
    dml.insert.dfByName.allowImplicitCasts insert.byName.schemaEvolution.enabled
    properties.defaults.minReaderVersion properties.defaults.minWriterVersion retentionDurationCheck.enabled
    schema.autoMerge.enabled vacuum.lite.enabled vacuum.logging.enabled vacuum.retentionWindowIgnore.enabled
    write.txnAppId write.txnVersion typeWidening.allowAutomaticWidening write.txnVersion.autoReset.enabled
    streaming.allowSchemaLocationOutsideCheckpointLocation streaming.allowSourceColumnDrop
    streaming.allowSourceColumnRename streaming.allowSourceColumnRenameAndDrop streaming.allowSourceColumnTypeChange
    streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled streaming.schemaTracking.metadataPathCheck.enabled
    tableFeatures.fastDropFeature.enabled withEventTimeOrder.enabled
"""

_GROUPS: tuple[tuple[State, str, str], ...] = (
    (
        State.PLANNED,
        "It comes with a later version.",
        """
            optimize.conditionalIncrementMetric.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "A table is clustered by at most four columns, and these have statistics whatever is altered.",
        "clusteredTable.numClusteringColumnsLimit=4 liquid.alterColumnAfter.statsSchemaCheck=true",
    ),
    (
        State.NO_EFFECT,
        "Identity columns are numbered wherever a table has them.",
        "identityColumn.enabled=true",
    ),
    (
        State.NO_EFFECT,
        "CONVERT TO DELTA reads the footers of a folder one after the other, some side by side, and holds none of them.",
        """
            import.batchSize.schemaInference=1000000 import.batchSize.statsCollection=50000
        """,
    ),
    (
        State.NO_EFFECT,
        "Small files are counted in the version that a commit makes; nothing is kept of them between commits.",
        """
            autoCompact.maxTablePartitionStats autoCompact.partitionStatsSize autoCompact.recordPartitionStats.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Optimized writes are shuffled by Spark's adaptive rebalancing, which puts small blocks together by itself.",
        "optimizeWrite.numShuffleBlocks=50000000",
    ),
    (
        State.NO_EFFECT,
        "OPTIMIZE writes each bin by a task of Spark, and clusters by a k-d grid.",
        """
            optimize.maxThreads=15 optimize.repartition.enabled=false optimize.zorder.fastInterleaveBits.enabled=false
        """,
    ),
    (
        State.NO_EFFECT,
        "VACUUM lists and deletes side by side, in the driver, and keeps the vectors of all files that it keeps.",
        """
            tableFeatures.dev.fastDropFeature.DVDiscoveryInVacuum.disabled=false
            vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility=true vacuum.parallelDelete.enabled=true
            vacuum.parallelDelete.parallelism vacuum.relativize.ignoreError=false
        """,
    ),
    (
        State.NO_EFFECT,
        "DROP FEATURE notes the files of vectors as removed, in one commit; streams are held to the protocol of each version.",
        """
            tableFeatures.fastDropFeature.alwaysValidateProtocolInStreaming.enabled=true
            tableFeatures.fastDropFeature.dvTombstoneCountThreshold=10000
            tableFeatures.fastDropFeature.generateDVTombstones.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Old versions are read for as long as their files are there.",
        "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration=false",
    ),
    (
        State.NO_EFFECT,
        "RESTORE leaves the protocol as it is, or raises it: older versions stay readable.",
        "restore.protocolDowngradeAllowed=false",
    ),
    (
        State.PLANNED,
        "Streams are read in one way, whatever it says; what can be chosen are options of the reader.",
        """
            deltaLog.getChangeLogFiles.failOnGapsInTests=true deltaLog.getChangeLogFiles.logGaps=true
            streaming.distributedInitialSnapshot=false streaming.ignoreInternalMetadataForSchemaChange.enabled=true
            streaming.initialSnapshotMaxFiles=100000 streaming.logSizeInMemoryThreshold
            streaming.offsetValidation.enabled=true streaming.schemaTracking.enabled=true
            streaming.schemaValidationOnRestart.enabled=true
            streaming.sink.implicitCastEscapeColumnNames=true streaming.sink.implicitCastForTypeMismatchOnly=true
            streaming.trailingCommitValidation.enabled=true
            streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled=false
            streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled=false
            streaming.unsafeReadOnNullabilityChange.enabled=false streaming.unsafeReadOnPartitionColumnChanges.enabled=false
            typeWidening.allowTypeChangeStreamingDeltaSource=true typeWidening.bypassStreamingTypeChangeCheck=false
            typeWidening.allowIntegralDecimalCoercion=true typeWidening.enableStreamingSchemaTracking=false
        """,
    ),
    (
        State.NO_EFFECT,
        "Which types may become wider is the specification's to say, for Iceberg's readers too; columns of a DataFrame show nothing of it.",
        """
            typeWidening.allowUnsupportedIcebergTypeChanges=false typeWidening.bypassUnsupportedTypeChangeCheck=false
            typeWidening.removeSchemaMetadata=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Statistics of files of an Iceberg table come of their footers, of all types; NO STATISTICS leaves them out.",
        """
            clone.iceberg.allowPartialStats=true collectStats.convertIceberg.date=true
            collectStats.convertIceberg.decimal=true collectStats.convertIceberg.timestamp=true
            collectStats.convertIceberg=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Partition values of an Iceberg table come of its manifests; buckets are no partitions; files of an older partitioning are refused.",
        """
            convert.iceberg.bucketPartition.enabled=true convert.iceberg.enabled=true
            convert.iceberg.partitionEvolution.enabled=false convert.iceberg.useNativePartitionValues=true
        """,
    ),
    (
        State.NO_EFFECT,
        "A clone replaces a table where it is asked to.",
        """
            clone.replaceEnabled=true
        """,
    ),
    (
        State.PLANNED,
        "The table feature that it is about is not written by this version (docs/features.md).",
        """
            adaptiveMetadataTree.preview.enabled=true amt.entriesPerLeaf=50000 amt.fullRewriteCheckpointIntervalMultiplier=5
            amt.largeCommitActionsCountThresholdForInlineManifestCommit
            catalog.enableServerSidePlanning=false
            coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName
            coordinatedCommits.commitCoordinator.dynamodb.readCapacityUnits=5
            coordinatedCommits.commitCoordinator.dynamodb.skipPathCheckEnabled=false
            coordinatedCommits.commitCoordinator.dynamodb.writeCapacityUnits=5
            coordinatedCommits.commitFilesIterator.backfillGapFix.enabled=true
            coordinatedCommits.getCommits.threadPoolSize=5 coordinatedCommits.ignoreMissingCoordinatorImplementation=true
            enableTableRedirectFeature=false skipRedirectFeature=false
        """,
    ),
    (
        State.NO_EFFECT,
        "Geometries and geographies need no leave of the session: a new table with such a column says so by its feature, one that is there "
        "must have the feature first (docs/design/036-geospatial.md).",
        "geo.preview.enabled",
    ),
    (
        State.NO_EFFECT,
        "A table gets variantType and variantShredding, not their previews; of a variant only NULLs are counted, and bounds of its paths are "
        "neither written nor used.",
        """
            stats.limitPerVariant=0 variant.disableVariantTableFeatureForSpark40=false variant.forceUsePreviewTableFeature=false
            variantShredding.collectVariantDataSkippingStats variantShredding.forceUsePreviewTableFeature=false
            variantShredding.guardVariantInStatsSchema.enabled=true variantShredding.parseFooterForStats=false
        """,
    ),
    (
        State.NO_EFFECT,
        "A CHECK constraint is one that Tahoe can evaluate, or is refused; NOT NULL inside arrays and maps is refused.",
        "checkConstraints.validation.enabled constraints.allowUnenforcedNotNull.enabled=false",
    ),
    (
        State.NO_EFFECT,
        "Rows get their ids in the commit that switches row tracking on, all files at once.",
        """
            backfill.maxNumFiles backfill.maxNumFilesFactor=3 rowTracking.backfill.enabled=true
            rowTracking.ignoreSuspension=false
        """,
    ),
    (
        State.NO_EFFECT,
        "Which features a table may have, and which log may be cleaned behind a dropped one, is the specification's to say.",
        """
            featureEnablement.conflictResolution.enabled=true
            tableFeatures.allowMetadataCleanupWhenAllProtocolsSupported=true
            tableFeatures.dev.allowMetadataCleanupCheckpointExistenceCheck.disabled=false
            tableFeatures.dev.unsupportedTableFeatures.enabled=false tableFeatures.testFeatures.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe writes and reads as its usual value asks for, whatever the session says.",
        """
            alterTable.dropColumn.enabled=true changeColumn.renameColumnEscapeName=true
            normalizePartitionValuesOnRead=true
            resolveMergeUpdateStructsByName.enabled=true skipRecordingEmptyCommits=true stalenessLimit=0
            table.parquetV2.timestampOutputType=timestamp_micros testOnly.dataFileNamePrefix testOnly.dvFileNamePrefix
            timeTravel.resolveOnIdentifier.enabled=true write.dataFilesToSubdir=false write.utcTimestampPartitionValues=true
        """,
    ),
    (
        State.NO_EFFECT,
        "It is not set by commits; the history and Table.version() tell the newest version.",
        "lastCommitVersionInSession",
    ),
    (
        State.NO_EFFECT,
        "Delta Sharing is not part of Tahoe.",
        """
            spark.sql.delta.sharing.cdfEnableHistoricalProtocol spark.sql.delta.sharing.cdfStreamingAutoResolveResponseFormat
            spark.sql.delta.sharing.enableAutoResolveForCdf spark.sql.delta.sharing.enableDeltaFormatBatch
            spark.sql.delta.sharing.forceDeltaFormat spark.sql.delta.sharing.streamingAutoResolveResponseFormat
            spark.sql.delta.sharing.streamingConvertStartingTimestampToVersion
            spark.sql.delta.sharing.streamingEnableHistoricalProtocol
        """,
    ),
    (
        State.NO_EFFECT,
        "Checkpoints and checksums are written and checked in Tahoe's own way, after the commit.",
        """
            allFilesInCrc.enabled=true allFilesInCrc.thresholdIndexedCols allFilesInCrc.thresholdNumFiles=50
            allFilesInCrc.verificationMode.enabled=false allFilesInCrc.verificationMode.forceOnNonUTC.enabled=true
            checkpoint.dropBackReference.enabled=true checkpoint.exceptionThrowing.enabled=false checkpoint.partSize
            checkpointSchema.useFromCheckpointMetadata=true checkpointSchema.writeThresholdLength=20000
            checkpointV2.exposeTableFeatureForTesting=false checkpointV2.threadpool.size=32 checkpointV2.topLevelFileFormat
            checksum.mismatch.fatal=true checksumDVMetrics.enabled=true
            checksumDeletedRecordCountsHistogramMetrics.enabled=true domainMetadatasInCrc.maxAllowed=10
            incremental.commit.enabled=true incremental.commit.forceVerifyInTests=true incremental.commit.verify=false
            lastCheckpoint.checksum.enabled=true lastCheckpoint.nonFileActions.threshold=30
            lastCheckpoint.sidecars.threshold=30 lastCheckpoint.suppressOptionalFields=false
            readProtocolAndMetadataFromChecksum.enabled=true setTransactionsInCrc.maxAllowed=100
            setTransactionsInCrc.writeOnCommit=true statsAsStructInCheckpoint.forcedDisabled
            versionChecksum.forcedValidationInterval=forced_checksum_validation_interval_default
            versionChecksum.forcedValidationMinTimeIntevalMinutes writeChecksumFile.enabled=true
            writeChecksumFile.histogramFollowsProtocol=true
        """,
    ),
    (
        State.REFUSED,
        "it changes the rows, columns or properties that are written or read, and only its usual value is supported.",
        """
            changeDataFeed.defaultSchemaModeForColumnMappingTable=endversion convertEmptyToNullForStringPartitionCol=true
            createDataFrame.dropNullColumns=false deltaTableBuilder.forceTablePropertyLowerCase.enabled=false
            dynamicPartitionOverwrite.enabled=true
            insert.preserveNullSourceStructs=true
            merge.preserveNullSourceStructs=true merge.preserveNullSourceStructs.updateStar=true
            streaming.createDataFrame.dropNullColumns=false updateAndMergeCastingFollowsAnsiEnabledFlag=false
        """,
    ),
    (
        State.REFUSED,
        "what it asks for would write what this version does not write.",
        """
            replaceWhere.constraintCheck.enabled=true replaceWhere.dataColumns.enabled=true
            replaceWhere.dataColumnsWithCDF.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Whether rows are marked or files rewritten is up to delta.enableDeletionVectors of the table.",
        """
            delete.deletionVectors.persistent=true merge.deletionVectors.persistent=true
            update.deletionVectors.persistent=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Statistics are always collected, from the footers of the files written, and always used.",
        """
            alwaysCollectStats.enabled=false collectStats.fallbackToInterpretedProjection=true
            collectStats.numFilesPerPartition=100 collectStats.skipFloatingPointFromFooter=true
            collectStats.useMultiThreadedStatsCollection=true commitStats.force=false
            skipping.enhancedIsNullPushdownExprs.enabled=true skipping.enhancedIsNullPushdownExprs.maxDepth=8
            skipping.partitionLikeDataSkipping.additionalSupportedExpressions
            skipping.partitionLikeDataSkipping.limitToClusteringColumns=true
            skipping.partitionLikeDataSkippingFilesThreshold=100 skipping.partitionLikeFilters.enabled=false
            stats.collect.using.tableSchema=true stats.collect=true stats.limitPushdown.enabled=true
            stats.limitPushdown.skipNonDeterministicFilters.enabled=true stats.skipping=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Every commit tells its operation and its metrics in commitInfo; conflicts are decided by it.",
        """
            commitInfo.enabled=true dmlMetricsFromMetadata.enabled=true history.metricsEnabled=true
            insertOverwrite.removeMetrics.enabled=true metrics.alwaysReportSomeZeroMetrics=true
            replaceWhere.dataColumns.metrics.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe decides this in one way, the safe one, whatever the session says.",
        """
            allowArbitraryProperties.enabled=false alter.replaceColumns.safe.enabled=true
            alterTable.bypassCharVarcharToStringFix=false
            alterTable.changeColumn.checkExpressions=true changeColumn.checkDependentExpressionsUseV2=true
            changeDataFeed.allowTimeTravelOptionsForSchema=false
            changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled=false checkLatestSchemaOnRead=true
            columnMapping.checkMaxColumnId=true commandInvariantChecksThrow=false commandInvariantChecksUseUnreliable=true
            commit.idempotencyCheck.enabled=false commitValidation.consistentDataChange.mode commitValidation.enabled=true
            conflictChecker.enforceConcurrentFeatureEnablement.enabled=false
            conflictDetection.allowReplaceTableToRemoveNewDomainMetadata=true
            conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates createEmptySchemaTable.enabled=true
            deletionVectors.skipCommitCheck=true
            duplicateActionCheck.enabled=true emptyFileCheck.throwEnabled=false
            failOnPartitionValueParsingError isDeltaTable.strictCheck=true isDeltaTable.throwOnError=true
            legacy.allowAmbiguousPathsInCreateTable=false legacy.storeOptionsAsProperties=false
            merge.emptySchemaTargetCheck.enabled=true merge.failIfSourceChanged=false nullPartitionCheck.throwEnabled=false
            numRecordsValidation.enabled=true partitionColumnChangeCheck postCommitHook.throwOnError
            replace.protocolDowngradeAllowed=false requiredSparkConfsCheck.enabled=true schema.typeCheck.enabled=true
            tablePropertyConstraintsCheck.enabled=true timeTravel.parsing.strict=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Iceberg metadata is made by Tahoe's own conversions (docs/design/004-uniform.md), which have settings of their own.",
        """
            hudi.maxPendingCommits=100 iceberg.maxPendingActions iceberg.maxPendingCommits=100
            uniform.hudi.sync.convert.enabled=false uniform.iceberg.geospatial.enabled=false
            uniform.iceberg.include.base.converted.version=true uniform.iceberg.maxActionsToConvertForCommitLarge=1000000
            uniform.iceberg.retry.times=3 uniform.iceberg.sync.convert.enabled=false uniform.iceberg.v3.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "It tunes how the JVM's implementation works inside; Tahoe works in another way.",
        """
            catalog.update.enabled=false catalog.update.longFieldTruncationThreshold=4000 catalog.update.threadPoolSize=20
            changelogV2.enabled=false columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists=true
            columnMapping.reuseColumnMetadataDuringOverwrite=true columnMapping.reuseColumnMetadataDuringReplace=true
            columnMapping.stripMetadata=true command.fileMaterializationLimit.enabled=true
            command.fileMaterializationLimit.softMax=10000000 commit.inconsistentList.maxRetries=3 commitLock.enabled
            commitMetrics.enabled=true commitMetrics.threadPoolSize=20
            deletionVectors.disableTightBoundOnFileCreationForDevOnly=false deletionVectors.packing.targetSize
            deletionVectors.propagateCloseFailure=true deletionVectors.useMetadataRowIndex=true
            deletionVectors.useObjectIdentityForNonAMTTables=false delta.log.cacheRetentionMinutes=60 delta.log.cacheSize=10000
            deltaLog.minorCompaction.useForReads=true dummyFileManager.numOfFiles=3 dummyFileManager.prefix
            dynamicPartitionOverwrite.parsePartitionValues=true fileSizeHistogramMetrics.enabled=true
            generatedColumn.allowNullableIngest.enabled=true generatedColumn.partitionFilterOptimization.enabled=true
            generatedColumn.validateOnWrite.enabled history.maxKeysPerList=1000 history.threadPoolSize=10
            hms.schema.forceAlterTableDataSchema=false inCommitTimestamp.retainEnablementInfoFix.enabled=true
            includeTableIdInFileIndexComparison=true
            insertReplaceOnOrUsing.materializeSource internalUdfOptimization.enabled=true
            loadFileSystemConfigsFromDataFrameOptions=true maxCommitAttempts=10000000 maxNonConflictCommitAttempts=10
            maxSnapshotLineageLength=50 merge.analysis.batchActionResolution.enabled=true
            merge.failSourceCachedAfterMaterialization=true merge.forceSourceMaterializationWithUnreadableFilesConfig=true
            merge.insert.fixCaseSensitiveDuplicateColumns=true merge.materializeCachedSource=true merge.materializeSource
            merge.materializeSource.maxAttempts=4 merge.materializeSource.rddStorageLevel=disk_only
            merge.materializeSource.rddStorageLevelFirstRetry merge.materializeSource.rddStorageLevelRetry
            merge.optimizeInsertOnlyMerge.enabled=true merge.optimizeMatchedOnlyMerge.enabled=true
            merge.repartitionBeforeWrite.enabled=true merge.skipOssResolutionWithStar=true partitionColumnValidity.enabled=true
            replaceOn.dataframe.writer.enabled=true replaceUsing.dataframe.writer.enabled=true schema.removeExistsDefault=true
            schema.removeSparkInternalMetadata=true schemaEvolution.merge.fixNestedStructAlignment=true
            snapshot.logging.maxFilesThreshold snapshotCache.storageLevel=memory_and_disk_ser snapshotLoading.maxRetries=2
            snapshotPartitions v2.enableMode=auto workAroundColonsInHadoopPaths.enabled=true
        """,
    ),
)
"""State, why, and the settings of which it holds."""


def _session_settings() -> list[Setting]:
    found = [Setting(PREFIX + name, State.WORKS, kind=_KIND) for name in _WORKS.split()]
    for state, why, names in _GROUPS:
        for name, _, usual in (one.partition("=") for one in names.split()):
            found.append(Setting(PREFIX + name, state, why, _KIND, (usual,) if usual else ()))
    return [*found, *_BEYOND]


SESSION_SETTINGS: tuple[Setting, ...] = tuple(_session_settings())
"""All of them, those that work first."""

_LOG_STORES = "spark.delta.logStore."
_BEGINNINGS = (PREFIX, "spark.databricks.io.skipping.", _LOG_STORES)
_BY_NAME = {setting.name: setting for setting in SESSION_SETTINGS}


def check_session_settings(settings: Mapping[str, str]) -> None:
    """A session with these settings reads or writes a Delta table: tell once of each that changes nothing, or refuse it.

    A name with the prefix that the reference does not know is told of too: it may be misspelt.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in settings.items():
        if not name.startswith(_BEGINNINGS) or name.startswith(_FREE):
            continue
        setting = _BY_NAME.get(name)
        if setting is None and name.startswith(_LOG_STORES):
            setting = replace(_BY_NAME[_LOG_STORES], name=name)
        check_setting(setting or Setting(name, State.NO_EFFECT, "delta-spark has no setting of this name.", _KIND), str(value))
